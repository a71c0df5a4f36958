define flowop name=work {
  flowop hog name=h,value=1
}
define flowop name=work {
  flowop hog name=h,value=2
}
define process name=p {
  thread name=t {
    flowop work name=w
  }
}
