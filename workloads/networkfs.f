# A network file server like netsfs whose number of files grows with the rate asked for.

set $dir=/tmp                         # directory the files go to
set $cached=false                     # false drops the files from the page cache before the run
set $eventrate=10                     # rounds a second in all; also scales the number of files
set $meandirwidth=20                  # mean entries per directory
set $nthreads=1                       # number of client threads
set $nfiles=10000                     # number of files per event a second
set $sync=false                       # true opens for synchronous data writes (O_DSYNC)
set $totalfiles=$nfiles * $eventrate  # number of files in all
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
set $meanidx=$totalfiles / 2          # mean file number
set $fileidx=randvar(type=uniform, min=0, mean=$meanidx)  # number of the file worked on (random)

eventgen rate=$eventrate

define fileset name=bigfileset, path=$dir, size=$filesize, entries=$totalfiles,
               dirwidth=$meandirwidth, prealloc=60, cached=$cached

# Replace a file: read it, write a new one of the same size, delete the old one.
define flowop name=rmw, $filesetrmw {
  flowop openfile name=openfile1, filesetname=$filesetrmw, indexed=$fileidx, fd=1
  flowop readwholefile name=readfile1, iosize=$rdiosize, fd=1
  flowop createfile name=createfile2, filesetname=$filesetrmw, indexed=$fileidx, fd=2, dsync=$sync
  flowop writewholefile name=writefile2, fd=2, iosize=$wrtiosize, srcfd=1
  flowop closefile name=closefile1, fd=1
  flowop closefile name=closefile2, fd=2
  flowop deletefile name=deletefile1, fd=1
}

# Start a program: read three files whole, their openings overlapping.
define flowop name=launch, $filesetlch {
  flowop openfile name=openfile3, filesetname=$filesetlch, indexed=$fileidx, fd=3
  flowop readwholefile name=readfile3, iosize=$rdiosize, fd=3
  flowop openfile name=openfile4, filesetname=$filesetlch, indexed=$fileidx, fd=4
  flowop readwholefile name=readfile4, iosize=$rdiosize, fd=4
  flowop closefile name=closefile3, fd=3
  flowop openfile name=openfile5, filesetname=$filesetlch, indexed=$fileidx, fd=5
  flowop readwholefile name=readfile5, iosize=$rdiosize, fd=5
  flowop closefile name=closefile4, fd=4
  flowop closefile name=closefile5, fd=5
}

# Add to a log.
define flowop name=appnd, $filesetapd {
  flowop openfile name=openfile6, filesetname=$filesetapd, indexed=$fileidx, fd=6, dsync=$sync
  flowop appendfilerand name=appendfilerand6, iosize=$wrtiosize, fd=6
  flowop closefile name=closefile6, fd=6
}

define process name=netclient, instances=1 {
  thread name=fileuser, memsize=10m, instances=$nthreads {
    flowop launch name=launch1, iters=1, $filesetlch=bigfileset
    flowop rmw name=rmw1, iters=6, $filesetrmw=bigfileset
    flowop appnd name=appnd1, iters=3, $filesetapd=bigfileset
    flowop statfile name=statfile1, filesetname=bigfileset, indexed=$fileidx
    flowop eventlimit name=ratecontrol
  }
}
