# Small random writes of one large file, up to a number of bytes.

set $dir=/tmp      # directory the file goes to
set $bytes=128m    # bytes after which the run ends
set $cached=false  # false drops the file from the page cache before the run
set $filesize=1g   # size of the file (bytes)
set $iosize=2k     # bytes per write
set $iters=1       # writes between two looks at the bytes done
set $nthreads=1    # number of writing threads
set $sync=false    # true opens for synchronous data writes (O_DSYNC)

define file name=bigfile1, path=$dir, size=$filesize, prealloc, reuse, cached=$cached

define process name=filewriter, instances=1 {
  thread name=filewriterthread, memsize=10m, instances=$nthreads {
    flowop write name=writefile1, filename=bigfile1, random, dsync=$sync,
                 iosize=$iosize, iters=$iters
    flowop finishonbytes name=finish, value=$bytes
  }
}
