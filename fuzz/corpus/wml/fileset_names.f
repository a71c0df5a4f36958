# Two filesets below different paths keep apart, and names may come from variables.
# expect: 2 files of 10 bytes in one/left, 2 of 20 bytes in two/right.

set mode quit alldone

set $dir=/tmp/one
set $name=left

define fileset name=$name, path=$dir, entries=2, dirwidth=100, dirgamma=0, size=10, prealloc
define fileset name=right, path=/tmp/two, entries=2, dirwidth=100, dirgamma=0, size=20, prealloc

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop statfile name=stat1, filesetname=$name
    flowop statfile name=stat2, filesetname=right
    flowop finishoncount name=end, value=1
  }
}

run
