# Writing one large file sequentially, again and again, flushed after every few writes.

set $dir=/tmp      # directory the file goes to
set $filesize=1g   # size of the file (bytes)
set $nthreads=1    # number of streams
set $iosize=1m     # bytes per write
set $writeiters=16 # writes before a flush

define file name=largefile1, path=$dir, size=$filesize, prealloc, reuse

define process name=seqwrite, instances=1 {
  thread name=seqwrite, memsize=10m, instances=$nthreads {
    flowop write name=seqwritefile1, filename=largefile1, iosize=$iosize, iters=$writeiters
    flowop fsync name=fsyncfile1
  }
}
