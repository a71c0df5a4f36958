# Files that grow and are read back, in the style of release 1.5.
set $dir=/srv/data      # directory of the files
set $size=cvar(type=cvar-gamma,parameters=mean:131072;gamma:1.5)
set $append=randvar(type=uniform,min=4k,mean=16k,round=512)
set $threads=8
set mode quit alldone

define fileset name="data-$threads", path=$dir, entries=1000, dirwidth=20, dirgamma=0,
  size=$size, prealloc=80, trusttree=false
define process name=worker, instances=2, nice=5 {
	thread name=grow, memsize=1m, instances=$threads, ioprio=4 {
		flowop openfile name=open, filesetname="data-$threads", fd=1
		flowop appendfile name=append, fd=1, iosize=$append, iters=4
		flowop fsync name=sync, fd=1
		flowop closefile name=close, fd=1
		flowop readwholefile name=read, filesetname="data-$threads", fd=2, iosize=1m
		flowop closefile name=close, fd=2
		flowop finishoncount name=enough, value=100k, target=read
	}
}
enable lathist
warmup 10
psrun -5 60
