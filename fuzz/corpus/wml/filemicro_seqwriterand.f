# Writing one large file by appends of a random size, once.

set $dir=/tmp      # directory the file goes to
set $cached=false  # false drops the file from the page cache before the run
set $count=128k    # number of appends
set $iosize=8k     # most bytes an append adds
set $nthreads=1    # number of appending threads
set $sync=false    # true opens for synchronous data writes (O_DSYNC)

define file name=bigfile, path=$dir, size=0, prealloc, cached=$cached

define process name=filewriter, instances=1 {
  thread name=filewriterthread, memsize=10m, instances=$nthreads {
    flowop openfile name=openfile1, filename=bigfile, fd=1, dsync=$sync
    flowop appendfilerand name=appendfilerand1, dsync=$sync, iosize=$iosize, fd=1, iters=$count
    flowop closefile name=closefile1, fd=1
    flowop finishoncount name=finish, value=1
  }
}
