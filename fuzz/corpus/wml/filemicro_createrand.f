# Creating one large file by appends of random size, flushed in batches, up to a number of bytes.

set $dir=/tmp    # directory the file goes to
set $bytes=1g    # bytes after which the run ends
set $iosize=1m   # most bytes an append adds
set $iters=10    # appends between two flushes
set $nthreads=1  # number of appending threads
set $sync=false  # true opens for synchronous data writes (O_DSYNC)

define file name=largefile, path=$dir, size=0, prealloc

define process name=filecreater, instances=1 {
  thread name=filecreaterthread, memsize=10m, instances=$nthreads {
    flowop appendfilerand name=appendfilerand1, filename=largefile, dsync=$sync,
                          iosize=$iosize, iters=$iters
    flowop fsync name=fsyncfile1
    flowop finishonbytes name=finish, value=$bytes
  }
}
