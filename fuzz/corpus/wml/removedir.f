# removedir removes the existing leaf directories in turn.
# expect: 6 operations; directories 00000001 to 00000006 are gone, 00000007 to 00000010 are left.

set mode quit alldone

define fileset name=data, path=/tmp, leafdirs=10, dirwidth=100, dirgamma=0, prealloc

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop removedir name=remove1, filesetname=data
    flowop finishoncount name=end, value=6, target=remove1
  }
}

run
