# Copying a directory tree: every file is read whole and written to a second tree.

set $dir=/tmp          # directory the files go to
set $nfiles=1000       # number of files to copy
set $meandirwidth=20   # mean entries per directory
set $meanfilesize=16k  # size of a file (bytes)
set $iosize=1m         # bytes per read and write
set $nthreads=1        # number of copying threads

set mode quit firstdone

define fileset name=bigfileset, path=$dir, size=$meanfilesize, entries=$nfiles,
               dirwidth=$meandirwidth, prealloc=100, paralloc
define fileset name=destfiles, path=$dir, size=$meanfilesize, entries=$nfiles,
               dirwidth=$meandirwidth

define process name=filereader, instances=1 {
  thread name=filereaderthread, memsize=10m, instances=$nthreads {
    flowop openfile name=openfile1, filesetname=bigfileset, fd=1
    flowop readwholefile name=readfile1, fd=1, iosize=$iosize
    flowop createfile name=createfile2, filesetname=destfiles, fd=2
    flowop writewholefile name=writefile2, fd=2, srcfd=1, iosize=$iosize
    flowop closefile name=closefile1, fd=1
    flowop closefile name=closefile2, fd=2
  }
}
