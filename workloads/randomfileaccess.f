# Random choice of files: append to one, read two others whole, all three open at once.

set $dir=/tmp             # directory the files go to
set $cached=false         # false drops the files from the page cache before the run
set $meandirwidth=20      # mean entries per directory
set $nthreads=5           # number of client threads
set $nfiles=10000         # number of files
set $sync=false           # true opens for synchronous data writes (O_DSYNC)
set $wrtiosize=randvar(type=gamma, min=512, round=512, mean=16k)  # most bytes added (random)
set $rdiosize=randvar(type=tabular, min=8k, round=1k, randtable={
  {85, 8k,  8k},
  {15, 8k, 64k}
}) # bytes per read (random)
set $filesize=randvar(type=tabular, min=1k, randtable={
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

define fileset name=bigfileset, path=$dir, size=$filesize, entries=$nfiles,
               dirwidth=$meandirwidth, prealloc=100, cached=$cached

define process name=netclient, instances=1 {
  thread name=fileuser, memsize=10m, instances=$nthreads {
    flowop openfile name=openfile1, filesetname=bigfileset, indexed=$fileidx, fd=1, dsync=$sync
    flowop openfile name=openfile2, filesetname=bigfileset, indexed=$fileidx, fd=2
    flowop openfile name=openfile3, filesetname=bigfileset, indexed=$fileidx, fd=3
    flowop appendfilerand name=appendfilerand1, iosize=$wrtiosize, fd=1
    flowop closefile name=closefile1, fd=1
    flowop readwholefile name=readfile2, iosize=$rdiosize, fd=2
    flowop readwholefile name=readfile3, iosize=$rdiosize, fd=3
    flowop closefile name=closefile2, fd=2
    flowop closefile name=closefile3, fd=3
  }
}
