# Random reads of one large file.

set $dir=/tmp      # directory the file goes to
set $filesize=5g   # size of the file (bytes)
set $iosize=8k     # bytes per read
set $nthreads=1    # number of threads
set $workingset=0  # bytes of the file that are used; 0 is all of it
set $directio=0    # 1 goes past the page cache (O_DIRECT)

define file name=largefile1, path=$dir, size=$filesize, prealloc, reuse, paralloc

define process name=rand-read, instances=1 {
  thread name=rand-thread, memsize=5m, instances=$nthreads {
    flowop read name=rand-read1, filename=largefile1, iosize=$iosize, random,
                workingset=$workingset, directio=$directio
  }
}
