# Small random reads of one large file, up to a number of bytes.

set $dir=/tmp      # directory the file goes to
set $bytes=128m    # bytes after which the run ends
set $cached=false  # false drops the file from the page cache before the run
set $filesize=1g   # size of the file (bytes)
set $iosize=2k     # bytes per read
set $iters=1       # reads between two looks at the bytes done
set $nthreads=1    # number of reading threads

define file name=bigfile1, path=$dir, size=$filesize, prealloc, reuse, cached=$cached

define process name=filereader, instances=1 {
  thread name=filereaderthread, memsize=10m, instances=$nthreads {
    flowop read name=readfile1, filename=bigfile1, random, iosize=$iosize, iters=$iters
    flowop finishonbytes name=finish, value=$bytes
  }
}
