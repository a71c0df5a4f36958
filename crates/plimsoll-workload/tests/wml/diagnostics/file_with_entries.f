define file name=f,path=/data,entries=10
