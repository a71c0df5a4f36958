# Writing one large file from start to end, once.

set $dir=/tmp      # directory the file goes to
set $cached=false  # false drops the file from the page cache before the run
set $count=1024    # number of appends
set $iosize=1m     # bytes per append
set $nthreads=1    # number of appending threads
set $sync=false    # true opens for synchronous data writes (O_DSYNC)

define file name=bigfile, path=$dir, size=0, prealloc, cached=$cached

define process name=filewriter, instances=1 {
  thread name=filewriterthread, memsize=10m, instances=$nthreads {
    flowop appendfile name=appendfile1, dsync=$sync, filename=bigfile, iosize=$iosize, iters=$count
    flowop finishoncount name=finish, value=1
  }
}
