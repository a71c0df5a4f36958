# Random writes to one large file, flushed once after a large batch of them.

set $dir=/tmp      # directory the file goes to
set $cached=false  # false drops the file from the page cache before the run
set $count=1       # operations after which the run ends; 1 is one batch and its flush
set $filesize=1g   # size of the file (bytes)
set $iosize=8k     # bytes per write
set $iters=16384   # writes in a batch
set $nthreads=1    # number of writing threads

define file name=bigfile, path=$dir, size=$filesize, prealloc, cached=$cached

define process name=filewriter, instances=1 {
  thread name=filewriterthread, memsize=10m, instances=$nthreads {
    flowop write name=writefile1, filename=bigfile, random, iosize=$iosize, iters=$iters
    flowop fsync name=fsyncfile1
    flowop finishoncount name=finish, value=$count
  }
}
