define fileset name=files,path=/data,entries=10,dirwidth=5,prealloc
define flowop name=work,$set {
  flowop openfile name=o,filesetname=$set,fd=1
  flowop closefile name=c,fd=1
}
define process name=p {
  thread name=t {
    flowop work name=w
  }
}
