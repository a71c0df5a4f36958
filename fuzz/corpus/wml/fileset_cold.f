# cached=false drops the files from the page cache, and hints do not change what is read.
# expect: 16 reads of 4096 bytes from 64 KiB: 65536 bytes.

set mode quit alldone

define file name=data, path=/tmp, size=64k, prealloc, cached=false

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop read name=read1, filename=data, iosize=4k, noreadahead, iters=16
    flowop finishoncount name=end, value=1
  }
}

run
