# appendfile opens the file itself and adds iosize bytes at the end each time.
# expect: data/00000001/00000001 has 10 x 1024 = 10240 bytes after its 100; 10 appends of 10240 bytes in all; 1 open by the append.

set mode quit alldone

define file name=data, path=/tmp, size=100, prealloc

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop appendfile name=append1, filename=data, iosize=1k, iters=10
    flowop finishoncount name=end, value=1
  }
}

run
