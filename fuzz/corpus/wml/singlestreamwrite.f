# Writing one large file sequentially, without end.

set $dir=/tmp    # directory the file goes to
set $nthreads=1  # number of streams
set $iosize=1m   # bytes per write

define file name=largefile1, path=$dir, prealloc

define process name=seqwrite, instances=1 {
  thread name=seqwrite, memsize=10m, instances=$nthreads {
    flowop write name=seqwritefile1, filename=largefile1, iosize=$iosize
  }
}
