# Sequential writes go on past the end of the file.
# expect: 10 writes of 1024 bytes from the start of a file of 100: it has 10240 bytes.

set mode quit alldone

define file name=data, path=/tmp, size=100, prealloc

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop write name=write1, filename=data, iosize=1k, iters=10
    flowop finishoncount name=end, value=1
  }
}

run
