# A network file server: programs start, files are replaced and appended to, at a fixed rate.

set $dir=/tmp             # directory the files go to
set $eventrate=10         # rounds a second in all; 0 lets them run freely
set $meandirwidth=20      # mean entries per directory
set $nthreads=1           # number of client threads
set $nfiles=100000        # number of files
set $sync=false           # true opens for synchronous data writes (O_DSYNC)
set $wrtiosize=randvar(type=tabular, min=1k, round=1k, randtable={
  { 0,   1k,   7k},
  {50,   9k,  15k},
  {14,  17k,  23k},
  {14,  33k,  39k},
  {12,  65k,  71k},
  {10, 129k, 135k}
}) # bytes per write (random)
set $rdiosize=randvar(type=tabular, min=8k, round=1k, randtable={
  {85,   8k,   8k},
  { 8,  17k,  23k},
  { 4,  33k,  39k},
  { 2,  65k,  71k},
  { 1, 129k, 135k}
}) # bytes per read (random)
set $filesize=randvar(type=tabular, min=1k, round=1k, randtable={
  {33,   1k,    1k},
  {21,   1k,    3k},
  {13,   3k,    5k},
  {10,   5k,   11k},
  { 8,  11k,   21k},
  { 5,  21k,   43k},
  { 4,  43k,   85k},
  { 3,  85k,  171k},
  { 2, 171k,  341k},
  { 1, 341k, 1707k}
}) # size of a file (bytes, random)

# Filebench's index is a gamma variable of mean 0.1, which is file 0 nearly always. Here every
# file is as likely as any other: uniform from 0 up to the number of files.
set $meanidx=$nfiles / 2  # mean file number
set $fileidx=randvar(type=uniform, min=0, mean=$meanidx)  # number of the file worked on (random)

eventgen rate=$eventrate

define fileset name=bigfileset, path=$dir, size=$filesize, entries=$nfiles,
               dirwidth=$meandirwidth, prealloc=60

# Replace a file: read it, write a new one of the same size, delete the old one.
define flowop name=rmw {
  flowop openfile name=openfile1, filesetname=bigfileset, indexed=$fileidx, fd=1
  flowop readwholefile name=readfile1, iosize=$rdiosize, fd=1
  flowop createfile name=createfile2, filesetname=bigfileset, indexed=$fileidx, fd=2, dsync=$sync
  flowop writewholefile name=writefile2, fd=2, iosize=$wrtiosize, srcfd=1
  flowop closefile name=closefile1, fd=1
  flowop closefile name=closefile2, fd=2
  flowop deletefile name=deletefile1, fd=1
}

# Start a program: read three files whole, their openings overlapping.
define flowop name=launch {
  flowop openfile name=openfile3, filesetname=bigfileset, indexed=$fileidx, fd=3
  flowop readwholefile name=readfile3, iosize=$rdiosize, fd=3
  flowop openfile name=openfile4, filesetname=bigfileset, indexed=$fileidx, fd=4
  flowop readwholefile name=readfile4, iosize=$rdiosize, fd=4
  flowop closefile name=closefile3, fd=3
  flowop openfile name=openfile5, filesetname=bigfileset, indexed=$fileidx, fd=5
  flowop readwholefile name=readfile5, iosize=$rdiosize, fd=5
  flowop closefile name=closefile4, fd=4
  flowop closefile name=closefile5, fd=5
}

# Add to a log.
define flowop name=appnd {
  flowop openfile name=openfile6, filesetname=bigfileset, indexed=$fileidx, fd=6, dsync=$sync
  flowop appendfilerand name=appendfilerand6, iosize=$wrtiosize, fd=6
  flowop closefile name=closefile6, fd=6
}

define process name=netclient, instances=1 {
  thread name=fileuser, memsize=10m, instances=$nthreads {
    flowop launch name=launch1, iters=1
    flowop rmw name=rmw1, iters=6
    flowop appnd name=appnd1, iters=3
    flowop statfile name=statfile1, filesetname=bigfileset, indexed=$fileidx
    flowop eventlimit name=ratecontrol
  }
}

run 60
