# fsync flushes the file of a slot.
# expect: 5 rounds of an append of 1000 bytes and a flush: 5000 bytes, 5 appends, 5 flushes.

set mode quit alldone

define file name=data, path=/tmp, size=0, prealloc

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop appendfile name=append1, filename=data, iosize=1000, fd=1
    flowop fsync name=fsync1, fd=1
    flowop finishoncount name=end, value=5, target=fsync1
  }
}

run
