# appendfilerand adds from 0 to iosize bytes each time.
# expect: 20 appends; the size of the file is the bytes they report, at most 20 x 1024 = 20480.

set mode quit alldone

define file name=data, path=/tmp, size=0, prealloc

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop appendfilerand name=append1, filename=data, iosize=1k, iters=20
    flowop finishoncount name=end, value=1
  }
}

run
