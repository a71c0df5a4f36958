# A tide of files: one process creates them all, then another deletes them all, in turn.

set $path=/tmp          # directory the files go to
set $nfiles=1000        # number of files
set $filesize=500k      # size of a file (bytes)
set $meandirwidth=1000  # entries per directory
set $dirgamma=0         # spread of directory widths and depths; 0 makes them exact
set $eventrate=0        # files created a second in all; 0 lifts the limit
set $runtime=60         # length of the run (seconds)

eventgen rate=$eventrate

define fileset name=manyfiles, path=$path, entries=$nfiles, size=$filesize,
               dirwidth=$meandirwidth, dirgamma=$dirgamma

define flowop name=createandclose {
  flowop createfile name=createfile1, filesetname=manyfiles, fd=1
  flowop writewholefile name=wrtfile1, filesetname=manyfiles, fd=1
  flowop closefile name=closefile1, fd=1
  flowop eventlimit name=createlimit
}

define process name=crproc {
  thread name=crthread {
    flowop createandclose name=create1, iters=$nfiles
    flowop wakeup name=wakedel, target=delprocblock
    flowop block name=crprocblock
  }
}

define process name=delproc {
  thread name=delthread {
    flowop block name=delprocblock
    flowop deletefile name=deletefile1, filesetname=manyfiles, iters=$nfiles
    flowop wakeup name=wakecreate, target=crprocblock
  }
}

run $runtime
