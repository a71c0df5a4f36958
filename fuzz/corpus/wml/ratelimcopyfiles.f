# Copying a directory tree at a fixed rate, as a background job would.

set $dir=/tmp      # directory the files go to
set $eventrate=10  # copying I/O operations a second; 0 lifts the limit
set $dirwidth=20   # mean entries per directory
set $filesize=16k  # size of a file (bytes)
set $iosize=1m     # bytes per read and write
set $nfiles=1000   # number of files to copy
set $nthreads=1    # number of copying threads

set mode quit firstdone
eventgen rate=$eventrate

define fileset name=bigfileset, path=$dir, size=$filesize, entries=$nfiles,
               dirwidth=$dirwidth, prealloc=100
define fileset name=destfiles, path=$dir, size=$filesize, entries=$nfiles,
               dirwidth=$dirwidth

define process name=filereader, instances=1 {
  thread name=filereaderthread, memsize=10m, instances=$nthreads {
    flowop openfile name=openfile1, filesetname=bigfileset, fd=1
    flowop readwholefile name=readfile1, fd=1, iosize=$iosize
    flowop createfile name=createfile2, filesetname=destfiles, fd=2
    flowop writewholefile name=writefile2, filesetname=destfiles, fd=2, srcfd=1, iosize=$iosize
    flowop closefile name=closefile1, fd=1
    flowop closefile name=closefile2, fd=2
    flowop iopslimit name=iopslimit1, target=writefile2
  }
}
