define fileset name=files,path=/data,entries=10,dirwidth=5,prealloc
define flowop name=work {
  flowop statfile name=s,filesetname=files
}
define process name=p {
  thread name=t {
    flowop work name=w
    flowop finishoncount name=f,value=5,target=work
  }
}
