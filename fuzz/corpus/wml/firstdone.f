# In firstdone mode the run ends with the first worker that ends.
# expect: the quick worker ends after 5 stats, long before the slow one has slept 30 s.

set mode quit firstdone

define fileset name=data, path=/tmp, entries=2, dirwidth=100, dirgamma=0, size=10, prealloc=100

define process name=quick {
  thread name=quickthread, memsize=1m, instances=1 {
    flowop statfile name=stat1, filesetname=data
    flowop finishoncount name=end, value=5, target=stat1
  }
}

define process name=slow {
  thread name=slowthread, memsize=1m, instances=1 {
    flowop delay name=sleep1, value=30
  }
}

run
