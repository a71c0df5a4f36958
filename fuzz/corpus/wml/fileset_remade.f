# Without reuse a later run starts from a fresh tree.
# expect: two runs in one directory; each deletes 2 of 5 files, so 3 are left: 00000003 to 00000005.

set mode quit alldone

define fileset name=data, path=/tmp, entries=5, dirwidth=100, dirgamma=0, size=100, prealloc=100

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop deletefile name=delete1, filesetname=data
    flowop finishoncount name=end, value=2, target=delete1
  }
}

run
