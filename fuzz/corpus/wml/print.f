# print prints its text, and echo prints a line between other statements.
# expect: the output holds both texts; 2 prints.

set mode quit alldone

define fileset name=data, path=/tmp, entries=2, dirwidth=100, dirgamma=0, size=10, prealloc=100

define process name=worker {
  thread name=workerthread, memsize=1m, instances=1 {
    flowop print name=say, value="from the worker"
    flowop statfile name=stat1, filesetname=data
    flowop finishoncount name=end, value=2
  }
}

echo "from the script"
run
