# Five sequential readers, each on a large file of its own.

set $dir=/tmp     # directory the files go to
set $filesize=1g  # size of each file (bytes)
set $nthreads=1   # number of streams per file
set $iosize=1m    # bytes per read

define file name=largefile1, path=$dir, size=$filesize, prealloc, reuse
define file name=largefile2, path=$dir, size=$filesize, prealloc, reuse
define file name=largefile3, path=$dir, size=$filesize, prealloc, reuse
define file name=largefile4, path=$dir, size=$filesize, prealloc, reuse
define file name=largefile5, path=$dir, size=$filesize, prealloc, reuse

define process name=seqread, instances=1 {
  thread name=seqread1, memsize=10m, instances=$nthreads {
    flowop read name=seqreadfile1, filename=largefile1, iosize=$iosize
  }
  thread name=seqread2, memsize=10m, instances=$nthreads {
    flowop read name=seqreadfile2, filename=largefile2, iosize=$iosize
  }
  thread name=seqread3, memsize=10m, instances=$nthreads {
    flowop read name=seqreadfile3, filename=largefile3, iosize=$iosize
  }
  thread name=seqread4, memsize=10m, instances=$nthreads {
    flowop read name=seqreadfile4, filename=largefile4, iosize=$iosize
  }
  thread name=seqread5, memsize=10m, instances=$nthreads {
    flowop read name=seqreadfile5, filename=largefile5, iosize=$iosize
  }
}
