# dirdepthrv sets the depth of every directory.
# expect: 4 files of 50 bytes in data/00000001/00000001, which lies at level 3.

set mode quit alldone

set $depth=randvar(type=uniform, min=3, mean=3)

define fileset name=data, path=/tmp, entries=4, dirwidth=10, dirgamma=0, dirdepthrv=$depth,
               size=50, prealloc

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop statfile name=stat1, filesetname=data
    flowop finishoncount name=end, value=1
  }
}

run
