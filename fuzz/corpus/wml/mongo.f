# A document store's files: extend one, read one whole, delete one, until none is left to delete.

set $dir=/tmp        # directory the files go to
set $nfiles=1000     # number of files in each of the two sets
set $dirwidth=20     # mean entries per directory
set $filesize=16k    # size of a file (bytes)
set $nthreads=1      # number of threads
set $meaniosize=16k  # most bytes an append adds
set $readiosize=1m   # bytes per call when a whole file is read

set mode quit firstdone

define fileset name=postset, path=$dir, size=$filesize, entries=$nfiles,
               dirwidth=$dirwidth, prealloc, paralloc
define fileset name=postsetdel, path=$dir, size=$filesize, entries=$nfiles,
               dirwidth=$dirwidth, prealloc, paralloc

define process name=filereader, instances=1 {
  thread name=filereaderthread, memsize=10m, instances=$nthreads {
    flowop openfile name=openfile1, filesetname=postset, fd=1
    flowop appendfilerand name=appendfilerand1, iosize=$meaniosize, fd=1
    flowop closefile name=closefile1, fd=1
    flowop openfile name=openfile2, filesetname=postset, fd=1
    flowop readwholefile name=readfile1, fd=1, iosize=$readiosize
    flowop closefile name=closefile2, fd=1
    flowop deletefile name=deletefile1, filesetname=postsetdel
  }
}
