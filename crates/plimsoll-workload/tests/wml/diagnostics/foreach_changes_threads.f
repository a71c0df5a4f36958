define fileset name=files,path=/data,entries=10,dirwidth=5,prealloc
set $io=1k
define process name=p {
  thread name=t {
    flowop read name=r,filesetname=files,iosize=$io
  }
}
foreach $n in 1k,8k {
  set $io=$n
  run 10
}
