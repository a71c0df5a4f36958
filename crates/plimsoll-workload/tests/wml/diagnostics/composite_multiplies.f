define fileset name=files,path=/data,entries=10,dirwidth=5,prealloc
define flowop name=f0 {
  flowop hog name=h,value=1
}
define flowop name=f1 {
  flowop f0 name=x
  flowop f0 name=x
  flowop f0 name=x
  flowop f0 name=x
  flowop f0 name=x
  flowop f0 name=x
  flowop f0 name=x
  flowop f0 name=x
  flowop f0 name=x
  flowop f0 name=x
}
define flowop name=f2 {
  flowop f1 name=x
  flowop f1 name=x
  flowop f1 name=x
  flowop f1 name=x
  flowop f1 name=x
  flowop f1 name=x
  flowop f1 name=x
  flowop f1 name=x
  flowop f1 name=x
  flowop f1 name=x
}
define flowop name=f3 {
  flowop f2 name=x
  flowop f2 name=x
  flowop f2 name=x
  flowop f2 name=x
  flowop f2 name=x
  flowop f2 name=x
  flowop f2 name=x
  flowop f2 name=x
  flowop f2 name=x
  flowop f2 name=x
}
define flowop name=f4 {
  flowop f3 name=x
  flowop f3 name=x
  flowop f3 name=x
  flowop f3 name=x
  flowop f3 name=x
  flowop f3 name=x
  flowop f3 name=x
  flowop f3 name=x
  flowop f3 name=x
  flowop f3 name=x
}
define flowop name=f5 {
  flowop f4 name=x
  flowop f4 name=x
  flowop f4 name=x
  flowop f4 name=x
  flowop f4 name=x
  flowop f4 name=x
  flowop f4 name=x
  flowop f4 name=x
  flowop f4 name=x
  flowop f4 name=x
}
define flowop name=f6 {
  flowop f5 name=x
  flowop f5 name=x
  flowop f5 name=x
  flowop f5 name=x
  flowop f5 name=x
  flowop f5 name=x
  flowop f5 name=x
  flowop f5 name=x
  flowop f5 name=x
  flowop f5 name=x
}
define process name=p {
  thread name=t {
    flowop f6 name=w
  }
}
