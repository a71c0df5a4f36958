define fileset name=files,path=/data,entries=10,dirwidth=5,readonly,writeonly
define process name=p {
  thread name=t {
    flowop read name=r,filesetname=files,iosize=4k
  }
}
