set $s=randvar(type=tabular,min=1k,randtable={{80,1k,4k},{10,4k,8k}})
define fileset name=files,path=/data,entries=10,dirwidth=5,prealloc
define process name=p {
  thread name=t {
    flowop read name=r,filesetname=files,iosize=4k
  }
}
