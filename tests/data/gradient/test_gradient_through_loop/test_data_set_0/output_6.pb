B
d.out.biasJÂ#¼>ÿ$@