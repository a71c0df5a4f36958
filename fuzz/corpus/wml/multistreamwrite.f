# Many sequential writers, each on a large file of its own.

set $dir=/tmp     # directory the files go to
set $filesize=1g  # size of each file (bytes)
set $nthreads=8   # number of streams and of files
set $iosize=1m    # bytes per write

# Every thread opens the next file of the set once, so no two threads share one.
define fileset name=largefiles, path=$dir, size=$filesize, entries=$nthreads,
               dirwidth=1024, dirgamma=0, prealloc=100, reuse, paralloc

define process name=seqwrite, instances=1 {
  thread name=seqwrite, memsize=10m, instances=$nthreads {
    flowop write name=seqwritefile, filesetname=largefiles, iosize=$iosize
  }
}
