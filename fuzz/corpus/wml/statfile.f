# statfile looks up the next existing file, or the open file of its slot.
# expect: 10 stats by choice and 7 by slot; nothing changes.

set mode quit alldone

define fileset name=data, path=/tmp, entries=5, dirwidth=100, dirgamma=0, size=100, prealloc=100

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop statfile name=stat1, filesetname=data, iters=10
    flowop openfile name=open1, filesetname=data, fd=1
    flowop statfile name=stat2, filesetname=data, fd=1, iters=7
    flowop closefile name=close1, fd=1
    flowop finishoncount name=end, value=1
  }
}

run
