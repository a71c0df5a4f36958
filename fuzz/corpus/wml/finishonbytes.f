# finishonbytes ends the worker when the bytes of its target reach the value.
# expect: 10 reads of 1024 bytes: 10240 bytes; the writes beside them do not count.

set mode quit alldone

define file name=data, path=/tmp, size=64k, prealloc

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop read name=read1, filename=data, iosize=1k, random
    flowop write name=write1, filename=data, iosize=1k, random
    flowop finishonbytes name=end, value=10k, target=read1
  }
}

run
