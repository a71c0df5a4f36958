# Creating and writing many small files until all are there.

set $dir=/tmp          # directory the files go to
set $nfiles=50000      # number of files to create
set $meandirwidth=100  # mean entries per directory
set $meanfilesize=16k  # size of a file (bytes)
set $iosize=1m         # bytes per write
set $nthreads=16       # number of creating threads

set mode quit firstdone

define fileset name=bigfileset, path=$dir, size=$meanfilesize, entries=$nfiles,
               dirwidth=$meandirwidth

define process name=filecreate, instances=1 {
  thread name=filecreatethread, memsize=10m, instances=$nthreads {
    flowop createfile name=createfile1, filesetname=bigfileset, fd=1
    flowop writewholefile name=writefile1, fd=1, iosize=$iosize
    flowop closefile name=closefile1, fd=1
  }
}
