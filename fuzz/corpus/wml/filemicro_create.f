# Creating one large file by appends, up to a number of operations.

set $dir=/tmp    # directory the file goes to
set $count=1024  # operations after which the run ends
set $iosize=1m   # bytes per append
set $nthreads=1  # number of appending threads
set $sync=false  # true opens for synchronous data writes (O_DSYNC)

define file name=largefile, path=$dir, size=0, prealloc

define process name=filecreater, instances=1 {
  thread name=filecreaterthread, memsize=10m, instances=$nthreads {
    flowop appendfile name=appendfile1, filename=largefile, dsync=$sync, iosize=$iosize
    flowop finishoncount name=finish, value=$count
  }
}
