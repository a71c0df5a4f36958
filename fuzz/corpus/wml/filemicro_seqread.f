# Reading one large file from start to end, again and again.

set $dir=/tmp      # directory the file goes to
set $cached=false  # false drops the file from the page cache before the run
set $filesize=1g   # size of the file (bytes)
set $iosize=1m     # bytes per read
set $nthreads=1    # number of reading threads

define file name=largefile, path=$dir, size=$filesize, prealloc, reuse, cached=$cached

define process name=filereader, instances=1 {
  thread name=filereaderthread, memsize=10m, instances=$nthreads {
    flowop read name=readfile1, filename=largefile, iosize=$iosize
  }
}
