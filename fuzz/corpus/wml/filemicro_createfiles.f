# Creating small files in one directory that already holds thousands.

set $dir=/tmp             # directory the files go to
set $count=15000          # operations after which the run ends
set $filesize=1k          # size of a file (bytes)
set $iosize=1m            # bytes per write
set $meandirwidth=100000  # mean entries per directory; this many puts all in one
set $nfiles=20000         # number of files, half of them there at the start
set $nthreads=1           # number of creating threads

define fileset name=bigfileset, path=$dir, size=$filesize, entries=$nfiles,
               dirwidth=$meandirwidth, prealloc=50

define process name=filecreate, instances=1 {
  thread name=filecreatethread, memsize=10m, instances=$nthreads {
    flowop createfile name=createfile1, filesetname=bigfileset, fd=1
    flowop writewholefile name=writefile1, filesetname=bigfileset, fd=1, iosize=$iosize
    flowop closefile name=closefile1, fd=1
    flowop finishoncount name=finish, value=$count
  }
}
