# Looking up the attributes of the files of a tree.

set $dir=/tmp         # directory the files go to
set $nfiles=10000     # number of files
set $meandirwidth=20  # mean entries per directory
set $filesize=128k    # size of a file (bytes)
set $nthreads=20      # number of threads

define fileset name=bigfileset, path=$dir, size=$filesize, entries=$nfiles,
               dirwidth=$meandirwidth, prealloc=100

define process name=examinefiles, instances=1 {
  thread name=examinefilethread, memsize=10m, instances=$nthreads {
    flowop statfile name=statfile1, filesetname=bigfileset
  }
}
