# A web proxy's cache: replace one cached page, then serve five others from the cache.

set $dir=/tmp              # directory the files go to
set $nfiles=10000          # number of cached pages
set $meandirwidth=1000000  # mean entries per directory; this many puts all in one
set $meanfilesize=16k      # size of a page (bytes)
set $nthreads=100          # number of proxy threads
set $meaniosize=16k        # most bytes a new page gets
set $iosize=1m             # bytes per call when a whole page is read
set $eventrate=0           # operations a second in all; 0 lifts the limit

eventgen rate=$eventrate

define fileset name=bigfileset, path=$dir, size=$meanfilesize, entries=$nfiles,
               dirwidth=$meandirwidth, prealloc=80

define process name=proxycache, instances=1 {
  thread name=proxycache, memsize=10m, instances=$nthreads {
    flowop deletefile name=deletefile1, filesetname=bigfileset
    flowop createfile name=createfile1, filesetname=bigfileset, fd=1
    flowop appendfilerand name=appendfilerand1, iosize=$meaniosize, fd=1
    flowop closefile name=closefile1, fd=1
    flowop openfile name=openfile2, filesetname=bigfileset, fd=1
    flowop readwholefile name=readfile2, fd=1, iosize=$iosize
    flowop closefile name=closefile2, fd=1
    flowop openfile name=openfile3, filesetname=bigfileset, fd=1
    flowop readwholefile name=readfile3, fd=1, iosize=$iosize
    flowop closefile name=closefile3, fd=1
    flowop openfile name=openfile4, filesetname=bigfileset, fd=1
    flowop readwholefile name=readfile4, fd=1, iosize=$iosize
    flowop closefile name=closefile4, fd=1
    flowop openfile name=openfile5, filesetname=bigfileset, fd=1
    flowop readwholefile name=readfile5, fd=1, iosize=$iosize
    flowop closefile name=closefile5, fd=1
    flowop openfile name=openfile6, filesetname=bigfileset, fd=1
    flowop readwholefile name=readfile6, fd=1, iosize=$iosize
    flowop closefile name=closefile6, fd=1
    flowop opslimit name=limit
  }
}
