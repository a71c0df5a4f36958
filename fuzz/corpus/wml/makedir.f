# makedir makes every missing leaf directory in turn, and the worker ends when there is none.
# expect: 10 directories data/00000001/00000001 to 00000010; 10 operations.

set mode quit alldone

define fileset name=data, path=/tmp, leafdirs=10, dirwidth=100, dirgamma=0

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop makedir name=make1, filesetname=data
  }
}

run
