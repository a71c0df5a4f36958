# Random synchronous writes (O_DSYNC) to one large file; set iosize for the 2k, 8k and 1m variants.

set $dir=/tmp     # directory the file goes to
set $count=65536  # operations after which the run ends
set $filesize=1g  # size of the file (bytes)
set $iosize=2k    # bytes per write
set $nthreads=1   # number of writing threads

define file name=bigfile, path=$dir, size=$filesize, prealloc, reuse

define process name=filewriter, instances=1 {
  thread name=filewriterthread, memsize=10m, instances=$nthreads {
    flowop write name=writesync1, filename=bigfile, random, dsync, iosize=$iosize
    flowop finishoncount name=finish, value=$count
  }
}
