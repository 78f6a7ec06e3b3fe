B
d.rec.biasJ¶©Г?ул@Э4ЩњШv»>