# A demonstration of custom random variables: reads of a size drawn anew for every one.

set $dir=/tmp       # directory the file goes to
set $filesize=100m  # size of the file (bytes)
set $iosize=cvar(type=cvar-uniform,parameters=lower:4096;upper:8192)  # bytes per read (random)

define file name=singlefile, path=$dir, size=$filesize, prealloc

define process name=filereader, instances=1 {
  thread name=filereader, memsize=1m, instances=1 {
    flowop openfile name=openfile1, filename=singlefile, fd=1
    flowop read name=readfile1, fd=1, iosize=$iosize
    flowop closefile name=closefile1, fd=1
  }
}

run 60
