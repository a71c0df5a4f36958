# readwholefile reads from the start to the end, in pieces, as one operation.
# expect: 6 whole reads of 10000 bytes: 60000 bytes; 6 opens, 6 closes; the files keep their size.

set mode quit alldone

define fileset name=data, path=/tmp, entries=3, dirwidth=100, dirgamma=0, size=10000, prealloc=100

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop openfile name=open1, filesetname=data, fd=1
    flowop readwholefile name=read1, fd=1, iosize=4k
    flowop closefile name=close1, fd=1
    flowop finishoncount name=end, value=6, target=read1
  }
}

run
