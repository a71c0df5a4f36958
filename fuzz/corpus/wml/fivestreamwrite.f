# Five sequential writers, each on a large file of its own.

set $dir=/tmp     # directory the files go to
set $filesize=1g  # size of each file (bytes)
set $nthreads=1   # number of streams per file
set $iosize=1m    # bytes per write

define file name=largefile1, path=$dir, size=$filesize, prealloc, reuse
define file name=largefile2, path=$dir, size=$filesize, prealloc, reuse
define file name=largefile3, path=$dir, size=$filesize, prealloc, reuse
define file name=largefile4, path=$dir, size=$filesize, prealloc, reuse
define file name=largefile5, path=$dir, size=$filesize, prealloc, reuse

define process name=seqwrite, instances=1 {
  thread name=seqwrite1, memsize=10m, instances=$nthreads {
    flowop write name=seqwritefile1, filename=largefile1, iosize=$iosize
  }
  thread name=seqwrite2, memsize=10m, instances=$nthreads {
    flowop write name=seqwritefile2, filename=largefile2, iosize=$iosize
  }
  thread name=seqwrite3, memsize=10m, instances=$nthreads {
    flowop write name=seqwritefile3, filename=largefile3, iosize=$iosize
  }
  thread name=seqwrite4, memsize=10m, instances=$nthreads {
    flowop write name=seqwritefile4, filename=largefile4, iosize=$iosize
  }
  thread name=seqwrite5, memsize=10m, instances=$nthreads {
    flowop write name=seqwritefile5, filename=largefile5, iosize=$iosize
  }
}
