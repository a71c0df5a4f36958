# An on-line transaction database: random reads by many users, a log writer and database writers.

set $dir=/tmp         # directory the files go to
set $eventrate=0      # transactions a second in all; 0 lets them run freely
set $runtime=30       # length of the run (seconds)
set $iosize=2k        # size of a database block (bytes)
set $nshadows=200     # number of shadow (user) processes
set $ndbwriters=10    # number of database writers
set $usermode=200000  # memory stores a shadow does per transaction (think time)
set $filesize=10m     # size of a data file (bytes)
set $memperthread=1m  # buffer of each thread (bytes)
set $workingset=0     # bytes of a data file that are used; 0 is all of it
set $logfilesize=10m  # size of a log file (bytes)
set $nfiles=10        # number of data files
set $nlogfiles=1      # number of log files
set $directio=0       # 1 goes past the page cache

eventgen rate=$eventrate

define fileset name=datafiles, path=$dir, size=$filesize, entries=$nfiles,
               dirwidth=1024, prealloc=100, reuse
define fileset name=logfile, path=$dir, size=$logfilesize, entries=$nlogfiles,
               dirwidth=1024, prealloc=100, reuse

define process name=lgwr, instances=1 {
  thread name=lgwr, memsize=$memperthread {
    flowop aiowrite name=lg-write, filesetname=logfile, iosize=256k, random,
                    directio=$directio, dsync
    flowop aiowait name=lg-aiowait
    flowop semblock name=lg-block, value=3200, highwater=1000
  }
}

define process name=dbwr, instances=$ndbwriters {
  thread name=dbwr, memsize=$memperthread {
    flowop aiowrite name=dbwrite, filesetname=datafiles, iosize=$iosize,
                    workingset=$workingset, random, iters=100, opennext,
                    directio=$directio, dsync
    flowop hog name=dbwr-hog, value=10000
    flowop semblock name=dbwr-block, value=1000, highwater=2000
    flowop aiowait name=dbwr-aiowait
  }
}

define process name=shadow, instances=$nshadows {
  thread name=shadow, memsize=$memperthread {
    flowop read name=shadowread, filesetname=datafiles, iosize=$iosize,
                workingset=$workingset, random, opennext, directio=$directio
    flowop hog name=shadowhog, value=$usermode
    flowop sempost name=shadow-post-lg, value=1, target=lg-block, blocking
    flowop sempost name=shadow-post-dbwr, value=1, target=dbwr-block, blocking
    flowop eventlimit name=random-rate
  }
}

# Filebench gave the run 60 seconds whatever $runtime said; here the parameter decides.
run $runtime
