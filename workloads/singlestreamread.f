# Reading one large file sequentially.

set $dir=/tmp     # directory the file goes to
set $filesize=5g  # size of the file (bytes)
set $nthreads=1   # number of streams
set $iosize=1m    # bytes per read
set $directio=0   # 1 goes past the page cache (O_DIRECT)

define file name=largefile1, path=$dir, size=$filesize, prealloc, reuse

define process name=seqread, instances=1 {
  thread name=seqread, memsize=10m, instances=$nthreads {
    flowop read name=seqreadfile1, filename=largefile1, iosize=$iosize, directio=$directio
  }
}
