# A video server: viewers stream at a fixed total rate while an archive of films is renewed.

set $dir=/tmp                  # directory the films go to
set $eventrate=96              # total rate of the viewers (MiB/s); 0 lifts the limit
set $filesize=10g              # size of a film (bytes)
set $nthreads=48               # number of viewers, one thread each
set $numactivevids=32          # films being shown
set $numpassivevids=194        # films in the archive, half of them there at the start
set $reuseit=false             # use the films of an earlier run again
set $readiosize=256k           # bytes per read of a viewer
set $writeiosize=1m            # bytes per write of a new film
set $passvidsname=passivevids  # name of the archive's fileset
set $actvidsname=activevids    # name of the fileset being shown
set $repintval=10              # pause between two replacements (seconds)

eventgen rate=$eventrate

define fileset name=$actvidsname, path=$dir, size=$filesize, entries=$numactivevids,
               dirwidth=4, prealloc, paralloc, reuse=$reuseit
define fileset name=$passvidsname, path=$dir, size=$filesize, entries=$numpassivevids,
               dirwidth=20, prealloc=50, paralloc, reuse=$reuseit

define process name=vidwriter, instances=1 {
  thread name=vidwriter, memsize=10m, instances=1 {
    flowop deletefile name=vidremover, filesetname=$passvidsname
    flowop createfile name=wrtopen, filesetname=$passvidsname, fd=1
    flowop writewholefile name=newvid, iosize=$writeiosize, fd=1, srcfd=1
    flowop closefile name=wrtclose, fd=1
    flowop delay name=replaceinterval, value=$repintval
  }
}

define process name=vidreaders, instances=1 {
  thread name=vidreaders, memsize=10m, instances=$nthreads {
    flowop read name=vidreader, filesetname=$actvidsname, iosize=$readiosize
    flowop bwlimit name=serverlimit, target=vidreader
  }
}
